-- The limit that was told of: after it was raised, what is reached of it is told again. Of rows from before it is not known, and nothing is told again.
alter table limit_alert add column told_of double precision not null default 'infinity';
