-- What somebody may do with a thing of somebody else. Ids of users, teams and things are never given again: a row whose user, team or thing is gone gives nothing.
create table grants (
  kind text not null,
  thing_id bigint not null,
  user_id bigint,
  team_id bigint,
  everybody boolean not null default false,
  -- 1 read, 2 edit, 3 admin
  level smallint not null check (level between 1 and 3),
  check (num_nonnulls(user_id, team_id) + everybody::int = 1)
);
create unique index grants_user on grants (user_id, kind, thing_id) where user_id is not null;
create unique index grants_team on grants (team_id, kind, thing_id) where team_id is not null;
create unique index grants_everybody on grants (kind, thing_id) where everybody;
create index grants_thing on grants (kind, thing_id);
