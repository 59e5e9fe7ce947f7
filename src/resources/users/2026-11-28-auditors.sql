-- Who sees all that administrators see, and changes nothing.
alter table users drop constraint users_role_check;
alter table users add constraint users_role_check check (role in ('user', 'auditor', 'admin'));
