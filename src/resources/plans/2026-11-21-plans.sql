create table plans (
  name text primary key,
  limits jsonb not null,
  changed_at timestamptz not null default now()
);
