// From IR to block programs: functions are inlined, variables become registers, branches and loops become
// masks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/cpu/block/program.hpp"
#include "kernel/ir/index_range.hpp"

namespace ferrite::kernel {

/// Thrown for what block programs cannot do; the interpreter takes over.
struct Unsupported {
  std::string reason;
};

class BlockCompiler {
 public:
  explicit BlockCompiler(BlockCode& program);
  /// Throws Unsupported.
  void compile();

 private:
  /// A function being compiled. Lanes that were not active when it began do not affect its variables.
  struct Scope {
    const Function* function = nullptr;
    IndexRange range;
    std::vector<Cells> variables;
    std::vector<int> assignments;  // how many places assign the variable
    std::vector<bool> defined;     // written, or zeroed when the function begins
    Cells results;
    std::size_t zeros = 0;           // in BlockCode::lists: what is zeroed when it begins
    int entry_mask = -1;             // of the caller
    bool returns = false;            // before its end: it has a mask of its own
    int depth = 0;                   // of branches and loops
    std::vector<int> chain;          // masks from its own down to the current one
    std::vector<std::size_t> loops;  // where in the chain they begin
  };

  /// The place of a value: in registers or in an array. With a selector it is one of several, lane by lane.
  struct Spot {
    Cells cells;                      // in registers
    int access = -1;                  // in an array: which access,
    std::vector<int> parts;           // and which parts of the element
    Register selector = no_register;  // i64
    int ways = 1;                     // cells or parts are ways * (size of the value)
    const Expr* variable = nullptr;   // that it is a part of
  };

  /// Frees the registers that were taken while it lived.
  struct Temporaries {
    explicit Temporaries(BlockCompiler& compiler) : compiler_(compiler), next_(compiler.next_) {}
    ~Temporaries() { compiler_.next_ = next_; }
    Temporaries(const Temporaries&) = delete;
    Temporaries& operator=(const Temporaries&) = delete;

   private:
    BlockCompiler& compiler_;
    std::uint32_t next_;
  };

  // compiler.cpp
  Cell take(ScalarType type);
  /// Bytes of every lane; returns where.
  std::uint32_t reserve(std::int64_t bytes);
  Cells take(Type type);
  int take_mask();
  int size_of(Type type) const;
  void scalars_of(Type type, std::vector<ScalarType>& out) const;
  Instruction& emit(Execute execute);
  std::size_t here() const { return program_.code.size(); }
  void land(std::size_t jump) { program_.code[jump].target = static_cast<int>(here()); }
  void collect(const std::vector<Stmt>& body);
  Cell constant(ScalarType type, Number n);
  void bind_parameter(Type type, int parameter, const std::string& name, const ElementLayout& layout,
                      std::size_t& part, Cells& out);
  void open(Scope& scope, const Function& function);
  void bind_copies(Cells& own, const Cells& given);
  void body(const std::vector<Stmt>& statements);

  // expressions.cpp
  Cells value(const Expr& e, const Cell* wanted = nullptr);
  Cells apply(const Expr& e, const Cell* wanted);
  Cells combine(Builtin builtin, Type type, const std::vector<Type>& types, std::vector<Cells> operands,
                Place place, const Cell* wanted = nullptr);
  Cells atomic(const Expr& e);
  Cells call(const Expr& e);
  Cells construct(const Expr& e);
  Cells logical(const Expr& e);
  Cells conditional(const Expr& e);
  std::vector<Cells> operands(const Expr& e);
  Cell cast(Cell from, ScalarType to, const Cell* wanted = nullptr);
  Cell unary(Execute execute, Cell a, ScalarType out);
  Cell binary(Execute execute, Cell a, Cell b, ScalarType out);
  Cell choose(Cell condition, Cell a, Cell b);
  Cells fresh(const Cells& cells);
  bool is_safe(const Expr& e) const;
  bool is_uniform(const Expr& e) const;

  // places.cpp
  Spot spot(const Expr& e);
  Spot element(const Expr& e);
  int access(const Expr& array, const Expr* first, std::size_t count, Place place);
  Cells load(const Spot& s, Type type, Place place, const Cell* wanted = nullptr);
  void store(const Expr& target, const Cells& cells);
  void store(const Spot& s, const Cells& cells, Place place);
  void assign_variable(const Expr& target, const Cells& cells);
  Cells update_memory(Builtin builtin, const Spot& s, const Cells& a, const Cells& b, Place place);
  void copy(Cell to, Cell from, int mask);
  void touch(const Expr& variable);

  // statements.cpp
  void statement(const Stmt& s);
  void assign(const Stmt& s);
  void update(const Stmt& s);
  void declare_array(const Stmt& s);
  void if_else(const Stmt& s);
  void for_loop(const Stmt& s);
  void while_loop(const Stmt& s);
  void repeat(const Stmt& loop, Instruction& round, int looping, std::size_t top);
  void leave(std::size_t from);
  void run_body(const std::vector<Stmt>& statements, int mask);
  int write_mask() const { return mask_ == scope_->entry_mask ? -1 : mask_; }

  BlockCode& program_;
  const Module& module_;
  Scope* scope_ = nullptr;
  int mask_ = -1;
  std::uint32_t next_ = 0;
  std::uint32_t uniform_end_ = 0;    // registers below are the same in all lanes: constants, parameters
  std::uint32_t permanent_end_ = 0;  // registers below do not change while a block runs
  std::map<std::pair<ScalarType, std::int64_t>, Cell> constants_;
  std::vector<const Function*> reached_;
  std::map<const Stmt*, int> shared_;
  std::map<std::pair<const Scope*, const Stmt*>, int> local_;
  Cell thread_;
  Cells axes_;
  bool draws_ = false;  // some expression draws random numbers
};

/// Whether a statement jumps out of its body.
bool has_jump(const std::vector<Stmt>& body);

}  // namespace ferrite::kernel
