-- the user's own limits, which stand above those of the plan; a member left out is the plan's
alter table users add column limits jsonb not null default '{}';
