-- What was asked and answered, beside the rows of the usage. `sealed` is absent where only lengths are kept.
create table prompt_log (
  request_id text collate "C" primary key,
  user_id bigint not null,
  at timestamptz not null default now(),
  address text not null,
  prompt_length bigint not null,
  answer_length bigint not null,
  for_administrators boolean not null,
  sealed bytea
);
create index prompt_log_at on prompt_log (at);
create index prompt_log_user on prompt_log (user_id);
