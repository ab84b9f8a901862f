-- The schema changes by way of the procedure, which checks first. Rows change as usual: the triggers check each.
CALL holdfast.ddl('ALTER TABLE app.orders ADD COLUMN state VARCHAR(20) NOT NULL DEFAULT ''open''');
UPDATE orders SET state = 'shipped' WHERE generation > 0;
