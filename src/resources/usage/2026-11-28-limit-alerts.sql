-- What was told of limits, each once in its month or day.
create table limit_alert (
  book text collate "C" not null,
  kind text collate "C" not null,
  period text collate "C" not null,
  share integer not null,
  at timestamptz not null default now(),
  primary key (book, kind, period, share)
);
