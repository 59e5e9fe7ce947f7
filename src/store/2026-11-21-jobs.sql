create table job (
  id text primary key,
  kind text not null,
  payload jsonb not null,
  -- of the jobs of a kind that are not over, one at most has this key
  unique_key text,
  state text not null default 'waiting' check (state in ('waiting', 'running', 'done', 'failed', 'cancelled')),
  run_at timestamptz not null default now(),
  tries integer not null default 0,
  most_tries integer not null,
  holder text,
  lease_until timestamptz,
  cancel_wanted boolean not null default false,
  progress jsonb,
  result jsonb,
  error text,
  added_at timestamptz not null default now(),
  ended_at timestamptz
);

create unique index job_unique on job (kind, unique_key) where state in ('waiting', 'running') and unique_key is not null;
create index job_waiting on job (kind, run_at) where state = 'waiting';
create index job_running on job (kind, lease_until) where state = 'running';
create index job_ended on job (ended_at) where ended_at is not null;
