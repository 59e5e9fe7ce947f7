-- How long a stream of a holder may take: its permits to stream end when it has been silent for longer.
alter table holders add column stream_seconds double precision not null default 3600;
