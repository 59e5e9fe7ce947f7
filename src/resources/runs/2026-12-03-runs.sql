-- the runs of agents
create table run (
  number bigint generated always as identity primary key,
  id text not null unique,
  user_id bigint not null references users (id) on delete cascade,
  -- of the credential that it was begun with; 0: a password
  key_id bigint not null,
  kind text not null check (kind in ('agent', 'deep_agent')),
  agent_id bigint,
  version int,
  state text not null check (state in ('running', 'waiting', 'completed', 'failed', 'cancelled')),
  -- the job that works on it, or did last
  job text not null,
  -- a new one each time that it is taken up, so that a former holder can write nothing more
  holder text,
  cancel_wanted boolean not null default false,
  request_id text not null,
  app text not null,
  limits jsonb not null,
  -- of its last event
  seq int not null default 0,
  -- booked steps that have been numbered
  numbered int not null default 0,
  steps int not null default 0,
  calls int not null default 0,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  plan_tokens bigint not null default 0,
  cost_usd double precision,
  worked_ms bigint not null default 0,
  -- sealed: what was asked, what it waits for, how it ended
  asked bytea not null,
  waits_for bytea,
  ending bytea,
  -- of all that is sealed of it
  bytes bigint not null,
  started_at timestamptz not null default now(),
  ended_at timestamptz
);
create index run_user on run (user_id, number);
create index run_started on run (started_at);
create index run_agent on run (agent_id) where agent_id is not null;

-- what was told in one go: the events numbered from first to last, sealed as one JSON array
create table run_event (
  run_id text not null references run (id) on delete cascade,
  first int not null,
  last int not null,
  sealed bytea not null,
  primary key (run_id, first)
);
alter table run_event alter column sealed set storage external;

create table run_step (
  run_id text not null references run (id) on delete cascade,
  -- a digest of its place and its key
  key text not null,
  number int not null,
  state text not null check (state in ('told', 'begun', 'interrupted', 'done', 'scratch')),
  -- what came of it; null until it is done
  sealed bytea,
  primary key (run_id, key)
);
alter table run_step alter column sealed set storage external;
