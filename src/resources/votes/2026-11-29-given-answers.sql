-- answers that users may vote on; what was asked and answered is sealed, and null where it is not kept
create table given_answer (
  id bigint generated always as identity primary key,
  uuid uuid not null unique,
  user_id bigint not null references users (id) on delete cascade,
  request_id text not null,
  model text not null,
  at timestamptz not null default now(),
  sealed bytea,
  bytes int not null,
  voted_at timestamptz
);
create index given_answer_user on given_answer (user_id, id);
create index given_answer_unvoted on given_answer (at) where voted_at is null;
create index given_answer_voted on given_answer (voted_at, id) where voted_at is not null;
