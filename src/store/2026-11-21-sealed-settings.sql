create table sealed_settings (
  name text primary key,
  sealed bytea not null,
  made_at timestamptz not null default now()
);
