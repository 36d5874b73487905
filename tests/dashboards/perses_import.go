// Perses' importer of Grafana's dashboards, with its schemas: perses_import SCHEMAS BOARD... prints one imported dashboard a line, as JSON.
// The exit code is 1 if a board is refused, or if the result is not valid for Perses. Compiled by tests/nightly_tools.sh within Perses' module.
package main

import (
	"encoding/json"
	"log"
	"os"

	"github.com/perses/perses/internal/api/migrate"
	"github.com/perses/perses/internal/api/schemas"
	"github.com/perses/perses/pkg/model/api/config"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func loaded(loaders []schemas.Loader) {
	for _, loader := range loaders {
		if _, _, err := loader.Load(); err != nil {
			log.Fatal(err)
		}
	}
}

func main() {
	place := os.Args[1]
	parts := config.Schemas{PanelsPath: place + "/panels", QueriesPath: place + "/queries", DatasourcesPath: place + "/datasources", VariablesPath: place + "/variables"}
	checker, importer := must(schemas.New(parts)), must(migrate.New(parts))
	loaded(checker.GetLoaders())
	loaded(importer.GetLoaders())
	importer.BuildMigrationSchemaString()
	for _, path := range os.Args[2:] {
		board := must(importer.Migrate(must(os.ReadFile(path))))
		for _, err := range []error{checker.ValidatePanels(board.Spec.Panels), checker.ValidateDashboardVariables(board.Spec.Variables)} {
			if err != nil {
				log.Fatalf("%s: %v", path, err)
			}
		}
		if err := json.NewEncoder(os.Stdout).Encode(board); err != nil {
			log.Fatal(err)
		}
	}
}
