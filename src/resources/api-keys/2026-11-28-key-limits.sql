-- the key's own limits, which hold beside those of its user
alter table api_keys add column if not exists limits jsonb not null default '{}';
