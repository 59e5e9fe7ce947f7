-- what models thought before their tool calls, for clients that cannot give it back
create table kept_thoughts (
  user_id bigint not null references users (id) on delete cascade,
  -- a keyed digest of the name of a tool call
  name bytea not null,
  -- sealed
  kept bytea not null,
  bytes int not null,
  expires_at timestamptz not null,
  primary key (user_id, name)
);
-- what is sealed cannot be made smaller
alter table kept_thoughts alter column kept set storage external;
create index kept_thoughts_expires on kept_thoughts (expires_at);
