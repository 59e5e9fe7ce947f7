-- names of the models that the key may ask; null: all
alter table api_keys add column models text[];
