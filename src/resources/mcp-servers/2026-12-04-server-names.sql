-- Of the servers of one name that somebody may use, the first one has the plain names of its tools.
create index mcp_server_by_name on mcp_server (name) where deleted_at is null;
