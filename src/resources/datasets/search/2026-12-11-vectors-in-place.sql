-- Vectors of up to 960 dimensions are kept in the rows themselves: elsewhere, where PostgreSQL puts values of more than 2,000 bytes, each is looked up. Rows that are there
-- already stay as they are.
do $$
declare
  one record;
begin
  for one in select id from vector_tables where dimensions <= 960 loop
    execute format('alter table %I alter column vector set storage plain', 'vectors_' || one.id);
  end loop;
end $$;
