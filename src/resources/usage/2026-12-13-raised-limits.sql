-- The limit at the time of the alert: a higher one is alerted anew. Infinity for existing rows, whose alerts are not repeated.
alter table limit_alert add column told_of double precision not null default 'infinity';
