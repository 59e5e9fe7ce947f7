-- the plugins of users; ids up to 10 are built in
create table plugin (
  id bigint generated always as identity (start with 11) primary key,
  owner_id bigint not null references users (id) on delete cascade,
  name text not null,
  title text not null,
  description text not null,
  category text not null,
  kind text not null,
  -- what it does: a template, a request or a script
  definition jsonb not null,
  -- JSON Schema of its values
  fields jsonb,
  file_mode boolean not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index plugin_owner_name on plugin (owner_id, lower(name));
create index plugin_owner on plugin (owner_id, id);
