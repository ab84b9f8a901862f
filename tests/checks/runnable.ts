/**
 * Tells files that have something to run from those that only declare types or pass on what others declare.
 *
 * @module
 */

import ts from "typescript";

/** Says whether a test run that loads the file can cover anything in it. */
export function hasSomethingToRun(file: ts.SourceFile): boolean {
  return file.statements.some((statement) =>
    !(ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement) ||
      ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement) ||
      isAmbient(statement))
  );
}

function isAmbient(statement: ts.Statement): boolean {
  return ts.canHaveModifiers(statement) &&
    (ts.getModifiers(statement) ?? []).some(({ kind }) => kind === ts.SyntaxKind.DeclareKeyword);
}
