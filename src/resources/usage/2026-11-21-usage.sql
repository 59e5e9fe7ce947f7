create table usage (
  month text not null,
  request_id text not null,
  step integer not null,
  at timestamptz not null,
  user_id bigint not null,
  key_id bigint not null,
  app text not null,
  face text not null,
  model text not null,
  served_model text not null,
  provider text not null,
  region text not null,
  attempts jsonb not null,
  status integer not null,
  "end" text not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,
  thought_tokens bigint not null,
  provenance text not null,
  plan_tokens bigint not null,
  cost_usd double precision,
  queue_ms double precision not null,
  first_token_ms double precision,
  total_ms double precision not null,
  primary key (month, request_id, step)
);
create index usage_user on usage (user_id, at desc);

create table spent (
  user_id bigint not null,
  month text not null,
  plan_tokens bigint not null default 0,
  cost_usd double precision not null default 0,
  requests bigint not null default 0,
  primary key (user_id, month)
);
