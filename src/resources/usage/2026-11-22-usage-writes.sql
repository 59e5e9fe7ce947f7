-- What was written into the cache of a provider, which costs more than the rest of a prompt: for some minutes, and for an hour.
alter table usage
  add column cache_write_tokens bigint not null default 0,
  add column cache_write_1h_tokens bigint not null default 0;

-- Books rows: an array of usage rows as JSON. Only rows that were not there yet count into the sums and into what the holder has settled.
create or replace function usage_book(the_holder text, rows json) returns void language plpgsql as $$
begin
  with added as (
    insert into usage
    select "requestId", step, to_char(to_timestamp(at / 1000) at time zone 'UTC', 'YYYY-MM'), to_timestamp(at / 1000), "userId", coalesce("teamIds", '{}'),
      "keyId", left(app, 200), face, tags, left(model, 200), left("servedModel", 200), provider, region, attempts, status, "end", "inputTokens", "outputTokens",
      "cachedTokens", "thoughtTokens", provenance, "planTokens", coalesce(balance, 'inference'), "costUsd", "queueMs", "firstTokenMs", "totalMs",
      coalesce("cacheWriteTokens", 0), coalesce("cacheWrite1hTokens", 0)
    from json_to_recordset(rows) as row(
      "requestId" text, step bigint, at double precision, "userId" bigint, "teamIds" bigint[], "keyId" bigint, app text, face text, tags jsonb, model text,
      "servedModel" text, provider text, region text, attempts json, status integer, "end" text, "inputTokens" bigint, "outputTokens" bigint,
      "cachedTokens" bigint, "thoughtTokens" bigint, provenance text, "planTokens" bigint, balance text, "costUsd" numeric, "queueMs" double precision,
      "firstTokenMs" double precision, "totalMs" double precision, "cacheWriteTokens" bigint, "cacheWrite1hTokens" bigint)
    on conflict do nothing
    returning month, at, user_id, team_ids, key_id, app, face, tags, model, provider, region, status, input_tokens, output_tokens, plan_tokens, balance, cost_usd
  ), shares as (
    select 'user:' || user_id as owner, month, plan_tokens, balance, cost_usd, input_tokens, output_tokens from added
    union all
    select 'team:' || team, month, plan_tokens, balance, cost_usd, input_tokens, output_tokens from added, unnest(team_ids) as team
  ), sums as materialized (
    select owner, month, coalesce(sum(plan_tokens) filter (where balance = 'inference'), 0) as inference,
      coalesce(sum(plan_tokens) filter (where balance = 'train'), 0) as train, coalesce(sum(cost_usd), 0) as usd,
      count(*) as requests, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens
    from shares group by owner, month
  ), booked as (
    insert into spent as old
    select * from sums order by owner collate "C", month
    on conflict (owner, month) do update set
      inference = old.inference + excluded.inference, train = old.train + excluded.train, usd = old.usd + excluded.usd,
      requests = old.requests + excluded.requests, input_tokens = old.input_tokens + excluded.input_tokens,
      output_tokens = old.output_tokens + excluded.output_tokens
    returning owner, month
  ), settled as (
    update leases set settled = settled + case kind when 'inference' then sums.inference when 'train' then sums.train else sums.usd end
    from booked join sums using (owner, month)
    where leases.owner = booked.owner and leases.month = booked.month and kind in ('inference', 'train', 'usd') and holder = the_holder
  )
  insert into usage_fresh
  select month, date_trunc('hour', at, 'UTC'), user_id, key_id, app, face, model, provider, region, coalesce(tags::text, ''), count(*), sum(input_tokens), sum(output_tokens),
    sum(plan_tokens), coalesce(sum(cost_usd), 0), count(*) filter (where status >= 400)
  from added group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10;
end $$;
