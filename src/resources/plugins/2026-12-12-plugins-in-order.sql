-- the members of a schema keep their order, which is that of a form, and which jsonb does not keep; the checks refuse the texts that jsonb refuses
alter table plugin
  alter column definition type json using definition::json, add check (jsonb_typeof(definition::jsonb) <> ''),
  alter column fields type json using fields::json, add check (jsonb_typeof(fields::jsonb) <> '');
