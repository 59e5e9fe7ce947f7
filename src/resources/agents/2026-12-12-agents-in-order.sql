-- the members of a schema keep their order, which jsonb does not; the check refuses the texts that jsonb refuses
alter table agent_version alter column definition type json using definition::json, add check (jsonb_typeof(definition::jsonb) <> '');
