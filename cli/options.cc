#include "options.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <utility>

namespace sardonyx::cli {
namespace {

CLI::Validator validator(Check check) { return CLI::Validator(std::move(check), ""); }

}  // namespace

size_t Option::count() const { return option_->count(); }

Option Option::required(bool is_required) const { return Option(option_->required(is_required)); }

Option Option::check(Check check) const {
  return Option(option_->check(validator(std::move(check))));
}

Option Option::transform(Check change) const {
  return Option(option_->transform(validator(std::move(change))));
}

Option Option::type_name(const std::string& name) const { return Option(option_->type_name(name)); }

Option Option::group(const std::string& name) const { return Option(option_->group(name)); }

Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }

Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }

Option Option::delimiter(char separator) const { return Option(option_->delimiter(separator)); }

Option Option::one_value_each() const { return Option(option_->allow_extra_args(false)); }

Options Options::add_command(const std::string& name, const std::string& help) const {
  return Options(*app_->add_subcommand(name, help));
}

void Options::on_chosen(std::function<void()> call) const { app_->callback(std::move(call)); }

template <class T>
Option Options::add_option(const std::string& names, T& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Options::add_flag(const std::string& names, bool& value, const std::string& help) const {
  return Option(app_->add_flag(names, value, help));
}

Option Options::add_list(const std::string& names,
                         std::function<void(const std::vector<std::string>&)> use,
                         const std::string& help) const {
  return Option(app_->add_option_function<std::vector<std::string>>(names, use, help));
}

Option Options::add_flag(const std::string& names, std::function<void()> use,
                         const std::string& help) const {
  const auto used = [use = std::move(use)](int64_t) { use(); };
  return Option(app_->add_flag_function(names, used, help));
}

Option Options::option(const std::string& name) const { return Option(app_->get_option(name)); }

void Options::remove_option(const std::string& name) const {
  app_->remove_option(app_->get_option(name));
}

// The types of values.
template Option Options::add_option(const std::string&, std::string&, const std::string&) const;
template Option Options::add_option(const std::string&, std::vector<std::string>&,
                                    const std::string&) const;
template Option Options::add_option(const std::string&, int&, const std::string&) const;
template Option Options::add_option(const std::string&, int64_t&, const std::string&) const;
template Option Options::add_option(const std::string&, uint64_t&, const std::string&) const;
template Option Options::add_option(const std::string&, double&, const std::string&) const;
template Option Options::add_option(const std::string&, std::optional<double>&,
                                    const std::string&) const;
template Option Options::add_option(const std::string&, std::optional<int64_t>&,
                                    const std::string&) const;
template Option Options::add_option(const std::string&, std::optional<std::string>&,
                                    const std::string&) const;
template Option Options::add_option(const std::string&, std::vector<float>&,
                                    const std::string&) const;
template Option Options::add_option(const std::string&, float&, const std::string&) const;

}  // namespace sardonyx::cli
