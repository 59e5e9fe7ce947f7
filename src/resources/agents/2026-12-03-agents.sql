-- agents of users; ids up to 10 are built in
create table agent (
  id bigint generated always as identity (start with 11) primary key,
  uuid uuid not null default gen_random_uuid(),
  owner_id bigint not null references users (id) on delete cascade,
  -- its last version, and the one that others run
  version int not null,
  published int,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index agent_owner on agent (owner_id, id);

create table agent_version (
  agent_id bigint not null references agent (id) on delete cascade,
  version int not null,
  name text not null,
  description text not null,
  mode text not null check (mode in ('single', 'router', 'autonomous')),
  -- what it does
  definition jsonb not null,
  created_at timestamptz not null default now(),
  published_at timestamptz,
  primary key (agent_id, version)
);
