-- Who wrote a version: what others wrote asks its owner too. Nobody knows that of the versions before this one, but that the first is the owner's.
alter table agent_version add column author_id bigint references users (id) on delete set null;
update agent_version set author_id = owner_id from agent where agent.id = agent_id and agent_version.version = 1;
create index agent_version_author on agent_version (author_id);
