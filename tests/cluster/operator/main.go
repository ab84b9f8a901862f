// Command operator runs one planned operation of a MysqlFailoverGroup as docs/operator-integration.md says: it waits for
// the holds of deployments, admits through the gate, writes the phase and clears. It shares no code with the service.
//
// It prints one JSON object a line: what it does. With -step it waits for a line on standard input between the admission
// and the phase.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

const prefix = "bloodraven.shipstream.io/"

var (
	errAgain = errors.New("others wrote in between")
	errLost  = errors.New("the admission was taken back")
	errHeld  = errors.New("held")
)

type object = unstructured.Unstructured

type operator struct {
	groups, leases       dynamic.ResourceInterface
	group, operation, by string
	step                 bool
}

func main() {
	namespace := flag.String("namespace", "", "namespace of the group")
	group := flag.String("group", "", "name of the group")
	operation := flag.String("operation", "OrderedUpdate", "OrderedUpdate or RestoreInPlace")
	by := flag.String("by", "test-operator", "this process in the gate")
	step := flag.Bool("step", false, "wait for a line between the admission and the phase")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fail(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		fail(err)
	}
	o := &operator{
		groups: client.Resource(schema.GroupVersionResource{Group: "shipstream.io", Version: "v1alpha1", Resource: "mysqlfailovergroups"}).Namespace(*namespace),
		leases: client.Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).Namespace(*namespace),
		group:  *group, operation: *operation, by: *by, step: *step,
	}
	if err := o.run(context.Background()); err != nil {
		fail(err)
	}
}

// run withdraws what an earlier process left, and then tries until the operation has its phase.
func (o *operator) run(ctx context.Context) error {
	if gate, record, err := o.readGate(ctx); err != nil {
		return err
	} else if planned := plannedOf(record); gate != nil && planned != nil && planned["by"] == o.by {
		if err := o.withdraw(ctx, planned["id"].(string)); err != nil {
			return err
		}
		say("withdrawn", "")
	}
	for ; ; time.Sleep(200 * time.Millisecond) {
		id := string(uuid.NewUUID())
		if err := o.admit(ctx, id); errors.Is(err, errHeld) || errors.Is(err, errAgain) {
			continue
		} else if err != nil {
			return err
		}
		say("admitted", id)
		if o.step {
			bufio.NewScanner(os.Stdin).Scan()
		}
		if err := o.writePhase(ctx, id); err != nil {
			say("given up", err.Error())
			return o.withdraw(ctx, id)
		}
		say("phase", o.operation)
		return o.clear(ctx, id)
	}
}

// admit: the gate, the group, the holds, and then the one write that decides.
func (o *operator) admit(ctx context.Context, id string) error {
	gate, record, err := o.readGate(ctx)
	if err != nil {
		return err
	}
	group, err := o.groups.Get(ctx, o.group, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if reason := o.refusal(group, gate, record); reason != "" {
		say("refused", reason)
		return errAgain
	}
	hold, err := o.earliestHold(ctx, group)
	if err != nil {
		return err
	}
	if hold != nil {
		say("deferred", fmt.Sprint(hold["operationId"]))
		if err := o.showHold(ctx, group, hold); err != nil {
			return err
		}
		return errHeld
	}
	record["planned"] = map[string]any{"operation": o.operation, "id": id, "by": o.by, "since": time.Now().UTC().Format(time.RFC3339), "state": "admitted"}
	return o.writeGate(ctx, gate, record)
}

func (o *operator) refusal(group, gate *object, record map[string]any) string {
	status := func(path ...string) string {
		text, _, _ := unstructured.NestedString(group.Object, append([]string{"status"}, path...)...)
		return text
	}
	failover, update, restore := status("plannedFailover", "phase"), status("updatePhase"), status("restoreInPlace", "phase")
	ended := func(phase string) bool { return phase == "" || phase == "Succeeded" || phase == "Failed" }
	_, revoking := group.GetAnnotations()[prefix+"revoke-deployment-leases"]
	switch waiting := restore == "Preflight" && o.operation == "RestoreInPlace"; {
	case gate == nil:
		return "no gate yet"
	case revoking:
		return "DeploymentRevocationPending"
	case !ended(failover), update != "", !ended(restore) && !waiting:
		return "ConcurrentOperation"
	case record["pending"] != nil:
		return "TopologyPersistencePending"
	case record["planned"] != nil:
		return fmt.Sprint(plannedOf(record)["operation"])
	}
	return ""
}

// writePhase reads the group before the gate, and writes under the version of the group.
func (o *operator) writePhase(ctx context.Context, id string) error {
	for range 3 {
		group, err := o.groups.Get(ctx, o.group, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, record, err := o.readGate(ctx)
		if err != nil {
			return err
		}
		if planned := plannedOf(record); planned == nil || planned["id"] != id || planned["by"] != o.by || planned["state"] != "admitted" {
			return errLost
		}
		status := map[string]any{"updatePhase": "UpdateReplica"}
		if o.operation == "RestoreInPlace" {
			generation, _, _ := unstructured.NestedInt64(group.Object, "status", "topologyGeneration")
			status = map[string]any{"restoreInPlace": map[string]any{"phase": "Fencing", "message": nil}, "topologyGeneration": generation + 1}
		}
		if err := o.patchStatus(ctx, group, status); !apierrors.IsConflict(err) {
			return err
		}
	}
	return errAgain
}

// withdraw marks the gate, gives the group a new version, and clears.
func (o *operator) withdraw(ctx context.Context, id string) error {
	if err := o.changePlanned(ctx, id, func(planned map[string]any) any { planned["state"] = "withdrawing"; return planned }); err != nil {
		return err
	}
	touch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{prefix + "deployment-gate-touch": string(uuid.NewUUID())}}})
	if _, err := o.groups.Patch(ctx, o.group, types.MergePatchType, touch, metav1.PatchOptions{}); err != nil {
		return err
	}
	if _, err := o.groups.Get(ctx, o.group, metav1.GetOptions{}); err != nil {
		return err
	}
	return o.clear(ctx, id)
}

func (o *operator) clear(ctx context.Context, id string) error {
	defer say("cleared", id)
	return o.changePlanned(ctx, id, func(map[string]any) any { return nil })
}

// changePlanned changes the admission with this id; another one, or none, is left alone.
func (o *operator) changePlanned(ctx context.Context, id string, change func(map[string]any) any) error {
	for {
		gate, record, err := o.readGate(ctx)
		if err != nil {
			return err
		}
		planned := plannedOf(record)
		if planned == nil || planned["id"] != id {
			return nil
		}
		record["planned"] = change(planned)
		if err := o.writeGate(ctx, gate, record); !errors.Is(err, errAgain) {
			return err
		}
	}
}

func (o *operator) readGate(ctx context.Context) (*object, map[string]any, error) {
	gate, err := o.leases.Get(ctx, shortened("bloodraven-deploy-"+o.group+"-gate"), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	record := map[string]any{}
	err = json.Unmarshal([]byte(gate.GetAnnotations()[prefix+"deployment-gate"]), &record)
	return gate, record, err
}

// writeGate writes under the uid and the version that the gate was read with: update sends both.
func (o *operator) writeGate(ctx context.Context, gate *object, record map[string]any) error {
	record["seq"] = record["seq"].(float64) + 1
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	annotations := gate.GetAnnotations()
	annotations[prefix+"deployment-gate"] = string(text)
	gate.SetAnnotations(annotations)
	if _, err = o.leases.Update(ctx, gate, metav1.UpdateOptions{}); apierrors.IsConflict(err) {
		return errAgain
	}
	return err
}

// earliestHold relies on the two labels and the owner alone. A hold blocks while its stored state is active.
func (o *operator) earliestHold(ctx context.Context, group *object) (map[string]any, error) {
	list, err := o.leases.List(ctx, metav1.ListOptions{LabelSelector: prefix + "deployment-kind=failover-hold," + prefix + "deployment-state=active"})
	if err != nil {
		return nil, err
	}
	var earliest map[string]any
	var end time.Time
	for _, lease := range list.Items {
		if owners := lease.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != group.GetUID() {
			continue
		}
		record := map[string]any{}
		if err := json.Unmarshal([]byte(lease.GetAnnotations()[prefix+"deployment-lease"]), &record); err != nil {
			return nil, err
		}
		expires, err := time.Parse(time.RFC3339Nano, fmt.Sprint(record["expiresAt"]))
		if err != nil {
			return nil, err
		}
		if record["state"] == "active" && (earliest == nil || expires.Before(end)) {
			earliest, end = record, expires
		}
	}
	return earliest, nil
}

// showHold lets a restore say why it waits. An ordered update says nothing.
func (o *operator) showHold(ctx context.Context, group *object, hold map[string]any) error {
	if o.operation != "RestoreInPlace" {
		return nil
	}
	message := fmt.Sprintf("DeploymentHold: operation %v of %v holds the restore until %v", hold["operationId"], hold["instance"], hold["expiresAt"])
	err := o.patchStatus(ctx, group, map[string]any{"restoreInPlace": map[string]any{"phase": "Preflight", "message": message}})
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (o *operator) patchStatus(ctx context.Context, group *object, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": group.GetResourceVersion()}, "status": status})
	if err == nil {
		_, err = o.groups.Patch(ctx, o.group, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	return err
}

func plannedOf(record map[string]any) map[string]any {
	planned, _ := record["planned"].(map[string]any)
	return planned
}

func shortened(name string) string {
	if len(name) <= 63 {
		return name
	}
	return fmt.Sprintf("%s-%x", strings.TrimRight(name[:38], "-."), sha256.Sum256([]byte(name)))[:len(strings.TrimRight(name[:38], "-."))+25]
}

func say(state, detail string) {
	line, _ := json.Marshal(map[string]string{"state": state, "detail": detail})
	fmt.Println(string(line))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
