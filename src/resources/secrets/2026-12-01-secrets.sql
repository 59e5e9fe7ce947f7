-- The secrets of users. The value is sealed for its owner and its name.
create table secret (
  id bigint generated always as identity primary key,
  owner_id bigint not null references users (id) on delete cascade,
  name text not null,
  sealed bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index secret_owner_name on secret (owner_id, name);
