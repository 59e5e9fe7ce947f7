-- How users are signed in at MCP servers.
create table mcp_sign_in (
  user_id bigint not null references users (id) on delete cascade,
  server_id bigint not null references mcp_server (id) on delete cascade,
  -- the address that it is for
  url text not null,
  state text not null check (state in ('needed', 'connected', 'failed')),
  error text,
  -- the rights that the server asked for
  scope text,
  -- the registration at the authorization server, and the tokens
  client bytea,
  tokens bytea,
  -- counts the tokens: other ones have another number
  renewals integer not null default 0,
  expires_at timestamptz,
  -- who renews the tokens, and until when nobody else does
  holder text,
  held_until timestamptz,
  -- renewals that failed since the last good one, and until when none is tried
  failures integer not null default 0,
  rests_until timestamptz,
  updated_at timestamptz not null default now(),
  primary key (user_id, server_id)
);
create index mcp_sign_in_server on mcp_sign_in (server_id);

-- Sign-ins that were begun, by the digest of their state: good for ten minutes, and once.
create table mcp_sign_in_begun (
  digest bytea primary key,
  user_id bigint not null references users (id) on delete cascade,
  server_id bigint not null references mcp_server (id) on delete cascade,
  url text not null,
  -- who began it, as the audit trail names them
  key_id bigint not null,
  sealed bytea not null,
  created_at timestamptz not null default clock_timestamp()
);
create index mcp_sign_in_begun_user on mcp_sign_in_begun (user_id, server_id);
create index mcp_sign_in_begun_server on mcp_sign_in_begun (server_id);
create index mcp_sign_in_begun_created on mcp_sign_in_begun (created_at);
