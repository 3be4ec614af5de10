{{ config(
    materialized='zordered_table', zorder=['id'],
    pre_hook=[
        "create table if not exists {{ this.schema }}.hook_log (what string, n bigint) using parquet",
        "insert into {{ this.schema }}.hook_log values ('pre', 0)",
        "select assert_true(" ~ (not var('fails_before', false)) ~ ", 'not now')",
    ],
    post_hook=[
        "insert into {{ this.schema }}.hook_log select 'post', count(*) from {{ this }}",
        "select make_interval(1, 2), map(1, 2), null, id, id from {{ this }}",
        "select assert_true(count(*) = " ~ var('rows_expected', 10) ~ ", 'not so many rows') from {{ this }}",
        after_commit("insert into {{ this.schema }}.hook_log values ('after', 0)"),
    ],
) }}
select id from range(10)
