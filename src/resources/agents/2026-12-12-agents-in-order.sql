-- the members of a schema keep their order: jsonb sorts them
alter table agent_version alter column definition type json using definition::json;
