-- who changed what; rows are only ever added, and name users and keys that may be gone by now
create table audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  -- null: whoever works on the machine itself
  user_id bigint,
  key_id bigint,
  action text not null,
  target_kind text not null,
  target_id text,
  -- by member: what it was, what it is
  changed jsonb not null,
  request_id text,
  address text
);
create index audit_target on audit (target_kind, target_id, id);
create index audit_user on audit (user_id, id);
