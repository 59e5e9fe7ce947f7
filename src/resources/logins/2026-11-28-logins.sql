-- a row for each request for a token and each sign-in; users may be gone by now, and of an address that is no user's the row is there to count failures
create table login (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  account text not null,
  user_id bigint,
  address text not null,
  is_good boolean not null,
  comment text not null
);
create index login_user on login (user_id, id) where user_id is not null;
create index login_failures on login (account, address, at) where not is_good;
create index login_at on login (at);
