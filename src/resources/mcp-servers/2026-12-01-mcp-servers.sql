-- The MCP servers of users, and those of the operator, which have no owner and are known by their name in the settings.
create table mcp_server (
  id bigint generated always as identity primary key,
  owner_id bigint references users (id) on delete cascade,
  operator_name text unique,
  name text not null,
  url text not null,
  type text not null default '',
  description text not null default '',
  metadata text,
  headers bytea,
  -- whose secrets fill the headers
  headers_by bigint references users (id) on delete set null,
  tools text[],
  approval text,
  state text not null default 'ok',
  last_error text,
  last_seen_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  check ((owner_id is null) <> (operator_name is null))
);
create unique index mcp_server_name on mcp_server (owner_id, lower(name)) where deleted_at is null;
create index mcp_server_owner on mcp_server (owner_id, id);

-- Which definitions of tools a user has approved.
create table mcp_approval (
  user_id bigint not null references users (id) on delete cascade,
  server_id bigint not null references mcp_server (id) on delete cascade,
  tool text not null,
  digest text not null,
  approved_at timestamptz not null default now(),
  primary key (user_id, server_id, tool)
);
create index mcp_approval_server on mcp_approval (server_id);

-- Calls of tools that wait for their user, with the turns that led to them: good for an hour, and once.
create table mcp_waiting (
  id bigint generated always as identity primary key,
  user_id bigint not null references users (id) on delete cascade,
  conversation text not null,
  calls text[] not null,
  sealed bytea not null,
  created_at timestamptz not null default now()
);
create index mcp_waiting_user on mcp_waiting (user_id, id);
create index mcp_waiting_created on mcp_waiting (created_at);
