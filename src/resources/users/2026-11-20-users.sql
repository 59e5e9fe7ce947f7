create table users (
  id bigint generated always as identity primary key,
  email text not null,
  role text not null default 'user' check (role in ('user', 'admin')),
  plan text not null,
  status text not null default 'active' check (status in ('active', 'suspended')),
  created_at timestamptz not null default now()
);
create unique index users_email on users (lower(email));
