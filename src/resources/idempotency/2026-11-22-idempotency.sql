create table idempotency (
  user_id bigint not null references users (id) on delete cascade,
  -- keyed digests: neither the key nor the body can be read or guessed from here
  name bytea not null,
  fingerprint bytea not null,
  -- who is answering it, and until when it is believed to live; null when there is an answer
  claim text unique,
  busy_until timestamptz,
  -- sealed
  answer bytea,
  bytes bigint not null default 0,
  expires_at timestamptz not null,
  primary key (user_id, name),
  check ((claim is null) = (answer is not null) and (claim is null) = (busy_until is null))
);
-- what is sealed cannot be made smaller
alter table idempotency alter column answer set storage external;
create index idempotency_expires on idempotency (expires_at);
