-- Three triggers for each table that migrations write to. They do not fire on a replica, which applies rows.

CREATE TRIGGER app.orders_fence_insert BEFORE INSERT ON app.orders
  FOR EACH ROW CALL holdfast.guard_row();

CREATE TRIGGER app.orders_fence_update BEFORE UPDATE ON app.orders
  FOR EACH ROW CALL holdfast.guard_row();

CREATE TRIGGER app.orders_fence_delete BEFORE DELETE ON app.orders
  FOR EACH ROW CALL holdfast.guard_row();
