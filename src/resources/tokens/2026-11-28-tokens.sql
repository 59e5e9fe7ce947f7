-- the keys that sign access tokens, sealed; the newest one signs
create table signing_key (
  id text primary key,
  sealed bytea not null,
  made_at timestamptz not null default now()
);

-- access tokens that were ended before their time
create table ended_token (
  id text primary key,
  until timestamptz not null
);
create index ended_token_until on ended_token (until);
