-- question
SELECT QUANTILE(stay, 0.9) AS long FROM visits;

-- statement
WITH _sf_near AS (
  SELECT
    _sf_ranked._sf_value,
    _sf_ranked._sf_count,
    CAST(_sf_ranked._sf_up_to AS BIGINT) AS _sf_up_to,
    CAST(_sf_ranked._sf_all AS BIGINT) AS _sf_all
  FROM (
    WITH _sf_rows AS (
      SELECT
        _sf_numbered._sf_unit,
        _sf_numbered._sf_value,
        ROW_NUMBER() OVER (
          PARTITION BY _sf_numbered._sf_unit, _sf_numbered._sf_value
          ORDER BY _sf_numbered._sf_value
        ) AS _sf_copy
      FROM (
        SELECT
          _sf_read._sf_unit,
          CASE
            WHEN _sf_read._sf_given IS NULL OR ISNAN(_sf_read._sf_given)
            THEN NULL
            ELSE CAST(LEAST(
              GREATEST(
                FLOOR((
                  LEAST(GREATEST(_sf_read._sf_given, 0.0), 60.0) - (
                    0.0
                  )
                ) * 8.0 + 0.5),
                0
              ),
              480
            ) AS BIGINT)
          END AS _sf_value
        FROM (
          SELECT
            TRY_CAST("_sf_t0"."patient_id" AS TEXT) COLLATE "binary" AS _sf_unit,
            (
              CASE
                WHEN ISNAN(
                  TRY_CAST(CASE
                    WHEN TYPEOF("_sf_t0"."stay") <> 'VARCHAR'
                    OR STRLEN(TRY_CAST("_sf_t0"."stay" AS TEXT)) <= 1000
                    THEN "_sf_t0"."stay"
                  END AS DOUBLE)
                )
                THEN NULL
                ELSE TRY_CAST(CASE
                  WHEN TYPEOF("_sf_t0"."stay") <> 'VARCHAR'
                  OR STRLEN(TRY_CAST("_sf_t0"."stay" AS TEXT)) <= 1000
                  THEN "_sf_t0"."stay"
                END AS DOUBLE)
              END
            ) AS _sf_given
          FROM "visits" AS _sf_t0
          WHERE
            NOT "_sf_t0"."patient_id" IS NULL
        ) AS _sf_read
      ) AS _sf_numbered
    ), _sf_values AS (
      SELECT
        _sf_ranked._sf_value
      FROM (
        SELECT
          _sf_hashed.*,
          ROW_NUMBER() OVER (
            PARTITION BY _sf_hashed._sf_unit
            ORDER BY _sf_hashed._sf_hash, _sf_hashed._sf_value
          ) AS _sf_place
        FROM (
          SELECT
            _sf_rows._sf_unit,
            _sf_rows._sf_value,
            CAST(MD5_NUMBER(
              CONCAT(
                TRY_CAST(_sf_rows._sf_unit AS TEXT) COLLATE "binary",
                '|',
                CAST(CAST(_sf_rows._sf_value AS BIGINT) AS TEXT),
                '|',
                CAST(CAST(_sf_rows._sf_copy AS BIGINT) AS TEXT),
                '|',
                '1'
              )
            ) & 281474976710655 AS BIGINT) AS _sf_hash
          FROM _sf_rows
          WHERE
            NOT _sf_rows._sf_value IS NULL
        ) AS _sf_hashed
      ) AS _sf_ranked
      WHERE
        _sf_ranked._sf_place <= 3
    ), _sf_counted AS (
      SELECT
        _sf_values._sf_value,
        COUNT(*) AS _sf_count
      FROM _sf_values
      GROUP BY
        _sf_values._sf_value
    )
    SELECT
      _sf_counted._sf_value,
      _sf_counted._sf_count,
      SUM(_sf_counted._sf_count) OVER (ORDER BY _sf_counted._sf_value) AS _sf_up_to,
      SUM(_sf_counted._sf_count) OVER () AS _sf_all
    FROM _sf_counted
  ) AS _sf_ranked
  WHERE
    (
      9 * _sf_ranked._sf_all + (
        0
      ) - 10 * _sf_ranked._sf_up_to < 4192
      AND 10 * (
        _sf_ranked._sf_up_to - _sf_ranked._sf_count
      ) - 9 * _sf_ranked._sf_all - (
        0
      ) < 4192
    )
)
SELECT
  MAX(_sf_near._sf_all),
  ARRAY_AGG(_sf_near._sf_value ORDER BY _sf_near._sf_value),
  ARRAY_AGG(_sf_near._sf_count ORDER BY _sf_near._sf_value),
  ARRAY_AGG(_sf_near._sf_up_to ORDER BY _sf_near._sf_value)
FROM _sf_near;
