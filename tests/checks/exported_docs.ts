/**
 * The rule that every export of lib says what it does.
 *
 * @module
 */

import ts from "typescript";
import { lineOf, type Offence, type Syntax } from "./syntax.ts";

/** Finds exports of lib without a doc comment that says something. What is only passed on is told where it is made. */
export function exportedDocOffences(syntax: Syntax): Offence[] {
  return syntax.files.filter((file) => file.fileName.startsWith("lib/")).flatMap((file) => {
    const named = namesExportedLater(file);
    const seen = new Set<string>();
    return file.statements.flatMap((statement) => {
      const exported = declaredNames(statement).filter((name) =>
        isExported(statement) || named.has(name)
      );
      // The overloads of a function are one export: its first one tells.
      const first = exported.filter((name) => !seen.has(name));
      for (const name of exported) seen.add(name);
      return isDocumented(statement) ? [] : first.map((name) => ({
        file: file.fileName,
        line: lineOf(statement),
        message: `Cannot export '${name}' without a doc comment: say what it does`,
      }));
    });
  });
}

function namesExportedLater(file: ts.SourceFile): Set<string> {
  const names = new Set<string>();
  for (const statement of file.statements) {
    if (!ts.isExportDeclaration(statement) || statement.moduleSpecifier !== undefined) continue;
    if (statement.exportClause === undefined || !ts.isNamedExports(statement.exportClause)) {
      continue;
    }
    for (const { name, propertyName } of statement.exportClause.elements) {
      names.add((propertyName ?? name).text);
    }
  }
  return names;
}

function declaredNames(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map((one) => one.name.getText());
  }
  if (ts.isExportAssignment(statement)) return ["default"];
  const isNamed = ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement) ||
    ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement) ||
    ts.isEnumDeclaration(statement) || ts.isModuleDeclaration(statement);
  return isNamed ? [statement.name?.text ?? "default"] : [];
}

function isExported(statement: ts.Statement): boolean {
  return ts.isExportAssignment(statement) ||
    ts.canHaveModifiers(statement) &&
      (ts.getModifiers(statement) ?? []).some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
}

/** A text, or what it returns or throws: each says what it does. What it takes alone does not. */
function isDocumented(statement: ts.Statement): boolean {
  return ts.getJSDocCommentsAndTags(statement).some((doc) =>
    ts.isJSDoc(doc) && [
      doc,
      ...doc.tags?.filter((tag) => ts.isJSDocReturnTag(tag) || ts.isJSDocThrowsTag(tag)) ?? [],
    ].some((part) => (ts.getTextOfJSDocComment(part.comment)?.trim() ?? "") !== "")
  );
}
