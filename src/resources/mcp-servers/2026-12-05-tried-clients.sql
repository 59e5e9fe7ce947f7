-- Whether a sign-in was begun with the registration since it was good: the authorization server may have forgotten it.
alter table mcp_sign_in add column is_client_tried boolean not null default false;
