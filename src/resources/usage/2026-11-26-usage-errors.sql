-- As before; whoever left or cancelled is no error.
create or replace function usage_book(the_holder text, rows json) returns bigint language plpgsql as $$
declare
  many bigint;
begin
  with added as (
    insert into usage
    select * from usage_rows(rows)
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
  ), fresh as (
    insert into usage_fresh
    select month, date_trunc('hour', at, 'UTC'), user_id, key_id, app, face, model, provider, region, coalesce(tags::text, ''), count(*), sum(input_tokens), sum(output_tokens),
      sum(plan_tokens), coalesce(sum(cost_usd), 0), count(*) filter (where status >= 400 and status <> 499)
    from added group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
    returning requests
  )
  select coalesce(sum(requests), 0) into many from fresh;
  return many;
end $$;
