-- the model whose vectors are being made while those of `embedding_model` are searched, and the job that makes them
alter table datasets add column building_model text;
alter table datasets add column building_job text;
