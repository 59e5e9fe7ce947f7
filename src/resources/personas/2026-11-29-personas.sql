-- the personas of users; ids up to 12 are built in
create table persona (
  id bigint generated always as identity (start with 13) primary key,
  owner_id bigint not null references users (id) on delete cascade,
  name text not null,
  description text not null,
  prompt text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index persona_owner on persona (owner_id, id);
