-- the key's own limits, which hold beside those of its user
alter table api_keys add column if not exists limits jsonb not null default '{}';
-- names of the tools that it may call over MCP; null: all
alter table api_keys add column mcp_tools text[];
alter table api_keys add column last_used_at timestamptz;
-- counts the texts that the key has had; access tokens say with which of them they were had
alter table api_keys add column version integer not null default 0;

-- former texts of a key, good until then
create table api_key_former (
  digest bytea primary key,
  key_id bigint not null references api_keys (id) on delete cascade,
  version integer not null,
  until timestamptz not null,
  unique (key_id, version)
);
