-- As before, but a row settles only the leases of the accounts that it was admitted by (`charges`, "kind book"). One that was admitted before a limit began, or
-- while there was none, held nothing of its lease: settled from it, it would lower what the holder seems to hold, and be spent a second time.
create or replace function usage_book(the_holder text, rows json, may_exist boolean) returns bigint language plpgsql as $$
declare
  many bigint;
begin
  perform pg_advisory_xact_lock_shared(7239014555); -- no book is opened meanwhile
  with hours as materialized (
    select month, date_trunc('hour', at, 'UTC') as hour, user_id, key_id, app, face, model, provider, region, coalesce(tags::text, '') as tags, balance,
      team_ids, coalesce(route, model) as route, count(*) as requests, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,
      sum(plan_tokens) as plan_tokens, coalesce(sum(cost_usd), 0) as cost_usd, count(*) filter (where status >= 400 and status <> 499) as errors,
      sum(cached_tokens) as cached_tokens, array_agg(first_token_ms) as first_times, array_agg(total_ms) as total_times,
      count(*) filter (where is_unpriced(cost_usd, status, input_tokens, output_tokens)) as unpriced
    from usage_added(rows, may_exist) group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
  ), parts as (
    select month, (hour at time zone 'UTC')::date as day, user_id, team_ids, key_id, route,
      coalesce(sum(plan_tokens) filter (where balance = 'inference'), 0) as inference,
      coalesce(sum(plan_tokens) filter (where balance = 'train'), 0) as train, sum(cost_usd) as usd,
      sum(requests) as requests, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens
    from hours group by 1, 2, 3, 4, 5, 6
  ), shares as (
    select owner, month, is_always, sum(inference) as inference, sum(train) as train, sum(usd) as usd, sum(requests) as requests,
      sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens
    from parts, usage_books(user_id, team_ids, key_id, route, day) group by 1, 2, 3
  ), sums as materialized (
    select owner, month, inference, train, usd, requests, input_tokens, output_tokens from shares
    where is_always or exists (select from spent where spent.owner = shares.owner and spent.month = shares.month)
  ), booked as (
    insert into spent as old
    select * from sums order by owner collate "C", month
    on conflict (owner, month) do update set
      inference = old.inference + excluded.inference, train = old.train + excluded.train, usd = old.usd + excluded.usd,
      requests = old.requests + excluded.requests, input_tokens = old.input_tokens + excluded.input_tokens,
      output_tokens = old.output_tokens + excluded.output_tokens
    returning owner, month
  ), charged as materialized (
    select substr(charge, strpos(charge, ' ') + 1) as owner, month, split_part(charge, ' ', 1) as kind,
      sum(case when charge like 'usd %' then coalesce("costUsd", 0) else "planTokens" end) as amount
    from json_to_recordset(case when strpos(rows::text, '"charges":') > 0 then rows else '[]' end) as row(
      "requestId" text, step bigint, at double precision, "planTokens" bigint, "costUsd" numeric(20, 12), charges text[])
      cross join to_char(to_timestamp(at / 1000) at time zone 'UTC', 'YYYY-MM') as month cross join unnest(charges) as charge
    where not may_exist or not exists (
      select from usage where usage.request_id = row."requestId" and usage.step = row.step and usage.month = month.month)
    group by 1, 2, 3
  ), settled as (
    update leases set settled = settled + charged.amount
    from booked join charged using (owner, month)
    where leases.owner = booked.owner and leases.month = booked.month and leases.kind = charged.kind and holder = the_holder
  ), fresh as (
    insert into usage_fresh
    select month, hour, user_id, key_id, app, face, model, provider, region, tags, requests, input_tokens, output_tokens, plan_tokens, cost_usd, errors,
      balance, team_ids, route, cached_tokens, times_of(first_times), times_of(total_times),
      usage_series(app, face, model, route, provider, region, tags, balance, team_ids), unpriced
    from hours
    returning requests
  )
  select coalesce(sum(requests), 0) into many from fresh;
  return many;
end $$;
