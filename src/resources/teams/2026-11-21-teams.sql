create table teams (
  id bigint generated always as identity primary key,
  name text not null,
  plan text not null,
  created_at timestamptz not null default now()
);
create unique index teams_name on teams (lower(name));

create table team_members (
  team_id bigint not null references teams (id) on delete cascade,
  user_id bigint not null references users (id) on delete cascade,
  primary key (team_id, user_id)
);
create index team_members_user on team_members (user_id);
