/**
 * The two forms of names that Kubernetes has (RFC 1123).
 *
 * @module
 */

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_FORM = new RegExp(`^${LABEL}$`);
const SUBDOMAIN_FORM = new RegExp(`^${LABEL}(\\.${LABEL})*$`);

/** True for a DNS-1123 label, as namespaces are called: lower case, 1 to 63 characters. */
export function isDnsLabel(name: string): boolean {
  return name.length <= 63 && LABEL_FORM.test(name);
}

/** True for a DNS-1123 subdomain, as most objects are called: lower case, 1 to 253 characters. */
export function isDnsSubdomain(name: string): boolean {
  return name.length <= 253 && SUBDOMAIN_FORM.test(name);
}
