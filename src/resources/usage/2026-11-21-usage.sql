-- A row for each step of a request. Months are partitions, made by months.ts and dropped whole. Ids compare as bytes: they are no words of a language.
create table usage (
  request_id text collate "C" not null,
  step bigint not null,
  month text collate "C" not null,
  at timestamptz not null,
  user_id bigint not null,
  team_ids bigint[] not null,
  key_id bigint not null,
  app text not null,
  face text not null,
  tags jsonb,
  model text not null,
  served_model text not null,
  provider text not null,
  region text not null,
  attempts json not null,
  status integer not null,
  "end" text not null,
  input_tokens bigint not null check (input_tokens >= 0),
  output_tokens bigint not null check (output_tokens >= 0),
  cached_tokens bigint not null,
  thought_tokens bigint not null,
  provenance text not null,
  plan_tokens bigint not null check (plan_tokens >= 0),
  balance text not null check (balance in ('inference', 'train')),
  cost_usd numeric(20, 12) check (cost_usd >= 0),
  queue_ms double precision not null,
  first_token_ms double precision,
  total_ms double precision not null,
  primary key (request_id, step, month)
) partition by list (month);
create index usage_at on usage (at);
create index usage_user on usage (user_id, at);
create index usage_model on usage (model collate "C", at);
create index usage_status on usage (status, at) where status <> 200;

-- What the rows of a month add up to, for each user and each team. The row of an owner is also what is locked while its accounts are leased;
-- the rows of the month '' are there for that alone.
create table spent (
  owner text collate "C" not null,
  month text collate "C" not null,
  inference bigint not null default 0,
  train bigint not null default 0,
  usd numeric not null default 0,
  requests bigint not null default 0,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  primary key (owner, month)
) partition by list (month);
create table spent_always partition of spent for values in ('') with (fillfactor = 70);

-- What the rows of an hour add up to. What was booked last still lies in usage_fresh, which nothing contends for; usage_fold moves it.
create table usage_hour (
  month text collate "C" not null,
  hour timestamptz not null,
  user_id bigint not null,
  key_id bigint not null,
  app text collate "C" not null,
  face text collate "C" not null,
  model text collate "C" not null,
  provider text collate "C" not null,
  region text collate "C" not null,
  tags text collate "C" not null, -- a jsonb as text, empty where there are none: at most 600 bytes, so that the key below fits into a page of its index
  requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  plan_tokens bigint not null,
  cost_usd numeric not null,
  errors bigint not null,
  primary key (hour, user_id, key_id, model, app, face, provider, region, tags, month)
) partition by list (month);
create index usage_hour_user on usage_hour (user_id, hour);
create table usage_fresh (like usage_hour);

-- How far the journals of all holders have been booked.
create table journal_position (
  journal text collate "C" primary key,
  byte bigint not null,
  moved_at timestamptz not null default now()
);

-- A boot of a process that holds leases. A closed one holds nothing any more; its row stays and says who closed it.
create table holders (
  id text collate "C" primary key,
  machine text not null,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  closed_at timestamptz,
  closed_how text check (closed_how in ('closed', 'adopted', 'written-off')),
  closed_by text
) with (fillfactor = 50);
create index holders_open on holders (id) where closed_at is null;

-- granted: all that a holder was ever given of an account, less what it gave back. settled: what it has booked of it. turn: its last message that changed
-- something here; moved: by how much that changed granted; reported: used permits that it spoke of.
create table leases (
  owner text collate "C" not null,
  month text collate "C" not null,
  kind text collate "C" not null check (kind in ('inference', 'train', 'usd', 'requests', 'streams')),
  holder text collate "C" not null references holders (id),
  granted double precision not null,
  settled double precision not null default 0,
  turn bigint not null,
  moved double precision not null,
  reported double precision not null default 0,
  primary key (owner, month, kind, holder)
) with (fillfactor = 70);
create index leases_holder on leases (holder);

-- Requests by the second in which they were made: those of the last minute count.
create table request_second (
  owner text collate "C" not null,
  second bigint not null,
  requests bigint not null,
  primary key (owner, second)
);
