-- A team's own limits stand above those of its plan.
alter table teams add column limits jsonb not null default '{}';

-- Who sees the keys and the usage of a team's members and says who they are.
create table team_admins (
  team_id bigint not null references teams (id) on delete cascade,
  user_id bigint not null references users (id) on delete cascade,
  primary key (team_id, user_id)
);
create index team_admins_user on team_admins (user_id);
