-- A report on a team reads the sums of single users, of which few are its own.
create index usage_hour_teams on usage_hour using gin (team_ids);
