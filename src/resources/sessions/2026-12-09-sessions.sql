-- who is signed in, by the digest of the text in the cookie
create table session (
  id bigint generated always as identity primary key,
  digest bytea not null unique,
  user_id bigint not null references users (id) on delete cascade,
  made_at timestamptz not null default now(),
  used_at timestamptz not null default now()
);
create index session_of_user on session (user_id, used_at);
create index session_last_used on session (used_at);
